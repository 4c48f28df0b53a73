"""What a user says about a log of their own system: where it is, and how it names things."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

from pydantic import Field, field_validator

from agent_gym.core.registry import Config

Stream: TypeAlias = Literal["signals", "orders", "fills", "protections"]
Format: TypeAlias = Literal["auto", "sqlite", "jsonl", "parquet"]
TimeUnit: TypeAlias = Literal["auto", "s", "ms", "us", "ns"]
STREAMS: tuple[Stream, ...] = get_args(Stream)


class RecordedSource(Config):
    """A recorded log: one SQLite, JSONL or Parquet file, or a folder with a file a stream."""

    kind: Literal["recorded"] = "recorded"
    path: str = Field(min_length=1, description="the file, or the folder with <stream>.jsonl files")
    format: Format = Field(default="auto", description="auto: found by content")
    hours: float | None = Field(
        default=None, gt=0.0, description="the last hours up to the newest row; null: all of it"
    )
    until: str | None = Field(
        default=None, description="end of the window as ISO time; null: the newest row"
    )
    mapping: str | None = Field(default=None, description="JSON or YAML file with foreign names")
    max_rows: int = Field(default=1_000_000, ge=1, description="a log with more rows is refused")
    max_bytes: int = Field(default=2**30, ge=1, description="a larger log is refused")
    max_unread_share: float = Field(
        default=0.1, ge=0.0, le=1.0, description="refused if more of the rows cannot be read"
    )
    max_named: int = Field(default=100, ge=0, description="how many unreadable rows are named")


class StreamNames(Config):
    """How a log names one stream.

    Attributes:
        table: The SQLite table, the file without its ending, or the value of ``stream_field``.
        columns: Our column -> their column; dots lead into nested values.
        values: Our column -> their value -> our value.
        constants: Our column -> a value for every row, where the log has no such column.
        scales: Our column -> a factor on its numbers, such as 0.01 for percent.
    """

    table: str | None = Field(default=None, min_length=1, max_length=128)
    columns: dict[str, str] = Field(default_factory=dict)
    values: dict[str, dict[str, str]] = Field(default_factory=dict)
    constants: dict[str, str | float] = Field(default_factory=dict)
    scales: dict[str, float] = Field(default_factory=dict)

    @field_validator("table")
    @classmethod
    def _plain(cls, table: str | None) -> str | None:
        if table is not None and (table in {".", ".."} or set(table) & set("/\\\0")):
            raise ValueError("a table or file name holds no path")
        return table


class LogNames(Config):
    """A mapping file: how a log tells its streams apart, writes times, and names columns."""

    stream_field: str = Field(
        default="stream", min_length=1, description="tells the stream of a row in a one-file log"
    )
    time_unit: TimeUnit = Field(default="auto", description="auto: found by the size of the number")
    streams: dict[Stream, StreamNames] = Field(default_factory=dict)

    def of(self, stream: Stream) -> StreamNames:
        """Return the names of a stream; our own where nothing was said."""
        return self.streams.get(stream, StreamNames())

    def table(self, stream: Stream) -> str:
        """Return what the log calls the stream."""
        return self.of(stream).table or stream
