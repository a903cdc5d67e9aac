"""What C computes, in plain Python and numpy: the oracle of the property tests and of the fuzzer."""
