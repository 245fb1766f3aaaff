"""Commands about studies, for any catalogue of them."""
