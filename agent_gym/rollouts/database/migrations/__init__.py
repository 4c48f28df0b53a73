"""Every schema the store has had, one step after the other; Alembic walks them."""
