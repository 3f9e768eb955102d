"""Backups: the database and the streams at one moment, with a manifest that is written last."""
