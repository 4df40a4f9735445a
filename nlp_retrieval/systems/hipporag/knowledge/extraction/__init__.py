"""What passages say, as a language model reads them."""
