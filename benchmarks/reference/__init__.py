"""Methods of the sources, as independent oracles for tests and benchmarks."""
