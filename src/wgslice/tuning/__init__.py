"""What work costs on the adapter at hand, measured."""
