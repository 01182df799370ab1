"""One module for each wire format: ``read(chunk, assembly)`` tells the assembly what a chunk says."""
