"""Which headers Host may lead a browser of another site to us."""

from nearstream.workers.config.hosts import is_foreign_name

OURS = (
    *(None, "localhost", "LocalHost:8080", "serve.localhost:8080", "127.0.0.1", "127.0.0.1:9465", "10.0.0.7:80"),
    *("[::1]", "[::1]:9465", "[2001:db8::1]:9465"),
)
FOREIGN = (
    *("", "evil.example", "evil.example:9465", "localhost.evil.example", "evil.localhost.example:9465"),
    *("notlocalhost", "localhost:evil.example", "127.0.0.1.evil.example", "127.0.0.1:9465:evil"),
    *("[::1].evil.example", "evil1", "0x7f.1", "localhost@evil.example"),
)


def test_only_an_address_and_a_name_of_this_machine_are_our_own() -> None:
    assert [host for host in OURS if is_foreign_name(host)] == []
    assert [host for host in FOREIGN if not is_foreign_name(host)] == []
