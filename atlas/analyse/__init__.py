"""The accountant and the tracer: exact arithmetic on a bound graph, and nothing else."""
