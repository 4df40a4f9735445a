"""Loaders of rows with named columns: CSV, Parquet, Hugging Face data sets."""
