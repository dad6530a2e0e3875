"""Two layouts and what a device can do become steps. Pure: every decision and tuning number is here."""
