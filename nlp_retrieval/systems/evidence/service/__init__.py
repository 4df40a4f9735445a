"""A project of sources as a service: endpoints and tools."""
