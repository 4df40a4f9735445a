"""Four systems that stand on the library as a plug-in of anybody would: by entry points and public names alone."""
