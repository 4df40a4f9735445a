"""The same questions asked of every subject (country by country), with what each signal said of every passage."""
