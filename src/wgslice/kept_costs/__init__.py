"""What work costs on the adapters of this machine, once it was measured: kept in files, and read again."""
