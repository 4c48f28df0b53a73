"""``agent-gym agents``: which agents can be named, and what they can be told."""

from __future__ import annotations

import inspect
from typing import Annotated, Any

import typer
from pydantic.fields import FieldInfo
from rich.console import Group
from rich.text import Text

from agent_gym.apps.cli.output import emit, table
from agent_gym.core.errors import ConfigError
from agent_gym.core.registry import entry, names

app = typer.Typer(no_args_is_help=True)

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


@app.command("list")
def list_agents(as_json: JsonOption = False) -> None:
    """List every agent with one line about it and its parameters."""
    found = [_listed(name) for name in names("agent")]
    rows: list[tuple[object, ...]] = [
        (
            each["name"],
            each["about"],
            ", ".join(f"{p['name']}={p['default']}" for p in each["parameters"]),
        )
        for each in found
    ]
    view = table("Agents", ("name", "what it does", "parameters"), rows)
    emit({"agents": found}, as_json=as_json, view=view)


@app.command("show")
def show_agent(
    name: Annotated[str, typer.Argument(help="Name of the agent, such as rules/sma-cross.")],
    as_json: JsonOption = False,
) -> None:
    """Show one agent: what it does and every parameter with its default and limits."""
    found = describe_agent(name)
    rows: list[tuple[object, ...]] = [
        (p["name"], p["type"], str(p["default"]), p["limits"], p["about"])
        for p in found["parameters"]
    ]
    parts = [Text(found["name"], style="bold"), Text(found["text"])]
    if rows:
        heads = ("parameter", "type", "default", "limits", "meaning")
        parameters = table("Parameters (--param name=value)", heads, rows)
        emit(found, as_json=as_json, view=Group(*parts, parameters))
    else:
        emit(found, as_json=as_json, view=Group(*parts, Text("It has no parameters.")))


def describe_agent(name: str) -> dict[str, Any]:
    """Return what is known of an agent as plain values."""
    known = entry("agent", name)
    text = inspect.getdoc(known.factory) or ""
    return {
        "name": name,
        "about": text.partition("\n")[0].replace("``", ""),
        "text": text.replace("``", ""),
        "module": known.factory.__module__,
        "available": True,
        "parameters": [
            _parameter(field_name, field) for field_name, field in known.config.model_fields.items()
        ],
    }


def _listed(name: str) -> dict[str, Any]:
    """Describe an agent; one whose library is not installed is listed and says so."""
    try:
        return describe_agent(name)
    except ConfigError as error:
        about = f"not available: {error}"
        return {"name": name, "about": about, "text": "", "available": False, "parameters": []}


def _parameter(name: str, field: FieldInfo) -> dict[str, Any]:
    kind = field.annotation
    default = field.get_default(call_default_factory=True)
    plain = isinstance(default, str | int | float | bool | None)
    return {
        "name": name,
        "type": kind.__name__ if isinstance(kind, type) else str(kind).replace("typing.", ""),
        "required": field.is_required(),
        "default": "(required)" if field.is_required() else default if plain else str(default),
        "limits": ", ".join(_limit(item) for item in field.metadata),
        "about": field.description or "",
    }


def _limit(item: Any) -> str:
    signs = {"gt": ">", "ge": ">=", "lt": "<", "le": "<="}
    for name, sign in signs.items():
        if hasattr(item, name):
            return f"{sign} {getattr(item, name):g}"
    return str(item)
