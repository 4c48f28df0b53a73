"""What the tables of the store share."""

from __future__ import annotations

from typing import Any, ClassVar

from sqlalchemy import JSON, BigInteger, Integer, MetaData, Text
from sqlalchemy.orm import DeclarativeBase

NANOS = BigInteger()
ROW_ID = BigInteger().with_variant(Integer, "sqlite")  # SQLite counts rows only as INTEGER

# Constraints have names, so that a later migration can speak of them.
NAMING = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "pk": "pk_%(table_name)s",
}


class Base(DeclarativeBase):
    """A row of the store; what comes back from a query is detached and changes nothing."""

    metadata = MetaData(naming_convention=NAMING)
    type_annotation_map: ClassVar[dict[Any, Any]] = {
        str: Text(),
        dict[str, Any]: JSON(none_as_null=True),
        list[Any]: JSON(none_as_null=True),
    }

    def as_dict(self) -> dict[str, Any]:
        """Return the columns as plain values, by name."""
        return {column.key: getattr(self, column.key) for column in self.__table__.columns}
