"""Constants of this machine: measured, kept in the user's cache folder, applied to the shipped cost model."""
