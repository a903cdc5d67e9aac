"""Numbers of variable length: unsigned LEB128, and zigzag for signed ones."""


def append_number(packed: bytearray, number: int) -> None:
    """Append a number in unsigned LEB128."""
    while number > 0x7F:
        packed.append(number & 0x7F | 0x80)
        number >>= 7
    packed.append(number)


def take_number(packed: bytes, at: int) -> tuple[int, int]:
    """Return the number at a place, and where the number ends.

    Raises:
        IndexError: It does not end.
    """
    number, shift = packed[at] & 0x7F, 7
    while packed[at] > 0x7F:
        at += 1
        number |= (packed[at] & 0x7F) << shift
        shift += 7
    return number, at + 1


def zigzag(number: int) -> int:
    """Return the unsigned form of a signed number."""
    return 2 * number if number >= 0 else -2 * number - 1


def signed(zigzag: int) -> int:
    """Return the signed number of an unsigned form."""
    return -(zigzag + 1) // 2 if zigzag & 1 else zigzag // 2
