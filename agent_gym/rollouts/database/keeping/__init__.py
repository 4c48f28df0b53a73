"""What keeps a store for years: backups, restores, retention and figures of its size."""
