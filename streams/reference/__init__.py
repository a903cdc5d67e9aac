"""The sources' own methods, as independent oracles for tests and benchmarks."""
