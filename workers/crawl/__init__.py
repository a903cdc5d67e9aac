"""Reading HTML: to text in processes that can be killed, because C parsers hang on small inputs."""
