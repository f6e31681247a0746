"""Networks that benchmarks and tests write themselves."""
