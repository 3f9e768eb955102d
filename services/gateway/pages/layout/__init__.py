"""What surrounds every page, and the pages that stand alone: signing in, and failures."""
