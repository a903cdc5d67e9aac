"""Read the WARC files of a WACZ, a zip file of stored web pages."""

import zlib
from collections.abc import Iterator
from io import BufferedReader, RawIOBase
from typing import IO, cast
from zipfile import BadZipFile, ZipFile, ZipInfo

from nearstream.streams.ingest.parse import INFLATED_MAX_BYTES, INFLATED_MAX_RATIO
from nearstream.workers.files.content import UnreadableFileError, read_pieces

START = b"PK\x03\x04"
DIRECTORY_MAX_BYTES = 1 << 20  # some 15,000 files, which take about 15 MB when they are listed
_IS_ENCRYPTED = 1
_WARC = (".warc", ".warc.gz", ".warc.zst")


class _Bounded:
    """A file of which a bounded part is read at once."""

    def __init__(self, stream: BufferedReader) -> None:
        self.seek, self.tell, self.seekable, self._read = stream.seek, stream.tell, stream.seekable, stream.read

    def read(self, size: int = DIRECTORY_MAX_BYTES) -> bytes:
        """Read `size` bytes, or fewer at the end."""
        if size > DIRECTORY_MAX_BYTES:
            raise UnreadableFileError(f"its list of files has more than {DIRECTORY_MAX_BYTES} bytes")
        return self._read(size if size >= 0 else DIRECTORY_MAX_BYTES)


def warc_files(stream: BufferedReader) -> Iterator[tuple[str, Iterator[bytes]]]:
    """Yield the name and the unpacked content of each WARC file."""
    try:
        with ZipFile(cast(IO[bytes], _Bounded(stream))) as archive:
            found = [each for each in archive.infolist() if each.filename.lower().endswith(_WARC)]
            if not found:
                raise UnreadableFileError("expected a WACZ, as the name says: it holds no WARC file")
            for each in found:
                yield each.filename, _unpacked(archive, each)
    except (BadZipFile, EOFError, NotImplementedError, ValueError):  # their texts may quote the file
        raise UnreadableFileError("the zip file is damaged or cut off") from None


def _unpacked(archive: ZipFile, file: ZipInfo) -> Iterator[bytes]:
    if file.flag_bits & _IS_ENCRYPTED:
        raise UnreadableFileError("it is encrypted")
    if file.file_size > max(INFLATED_MAX_BYTES, INFLATED_MAX_RATIO * file.compress_size):
        raise UnreadableFileError(f"it expands to more than {INFLATED_MAX_RATIO} times its size")
    try:
        with archive.open(file) as packed:
            yield from read_pieces(BufferedReader(cast(RawIOBase, packed)), file.filename)
    except (BadZipFile, EOFError, NotImplementedError, zlib.error):
        raise UnreadableFileError("the zip file is damaged or cut off here") from None
