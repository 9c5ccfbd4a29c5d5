"""Config file + changes from the command line → the settings of a run."""

import json
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from catalogue import RegistryError
from confection import Config, ConfigValidationError

from training.errors import Errors, SapbertError
from training.losses.registry import registry

DEFAULT_CONFIG = Path(__file__).parents[1] / "configs" / "default.cfg"
TYPES = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}


def parse_overrides(arguments: Sequence[str]) -> dict[str, Any]:
    """Read changes of a config from the command line, as spaCy's commands take them.

    arguments (Sequence[str]): E.g. `--training.seed`, `1`, `--training.epochs=3`.
    RETURNS (dict[str, Any]): Values by their dotted names; what is no JSON is a text.
    RAISES (SapbertError): If an argument is no dotted name, or has no value.
    """
    overrides: dict[str, Any] = {}
    rest = list(arguments)
    while rest:
        argument = rest.pop(0)
        key, equals, value = argument.removeprefix("--").partition("=")
        if not argument.startswith("--") or "." not in key:
            raise SapbertError(Errors.E610.format(argument=argument))
        if not equals:
            if not rest:
                raise SapbertError(Errors.E611.format(argument=argument))
            value = rest.pop(0)
        try:
            overrides[key] = json.loads(value)
        except ValueError:
            overrides[key] = value
    return overrides


def nest_values(values: dict[str, Any]) -> dict[str, Any]:
    """Turn dotted names into sections: {"a.b": 1} → {"a": {"b": 1}}.

    values (dict[str, Any]): By their dotted names.
    RETURNS (dict[str, Any]): By section.
    RAISES (SapbertError): If a name is that of a value and of a section.
    """
    nested: dict[str, Any] = {}
    for dotted, value in values.items():
        *sections, key = dotted.split(".")
        section = nested
        for name in sections:
            section = section.setdefault(name, {})
            if not isinstance(section, dict):
                raise SapbertError(Errors.E610.format(argument=f"--{dotted}"))
        section[key] = value
    return nested


def flatten_config(
    config: dict[str, Any], prefix: str = ""
) -> Iterator[tuple[str, Any]]:
    """Turn sections into dotted names: {"a": {"b": 1}} → ("a.b", 1)."""
    for key, value in config.items():
        if isinstance(value, dict):
            yield from flatten_config(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def read_config(
    path: Path | None = None, overrides: dict[str, Any] | None = None
) -> Config:
    """Read the defaults, what a config file changes, and what the command line does.

    path (Path | None): A config file; it may hold only what differs.
    overrides (dict[str, Any] | None): Values by their dotted names.
    RETURNS (Config): The whole config, with every default in it.
    RAISES (SapbertError): If a setting is unknown or of another type.
    """
    default = Config().from_disk(DEFAULT_CONFIG)
    config = default
    if path is not None:
        try:
            config = merge_config(config, Config().from_disk(path))
        except (ValueError, OSError) as error:
            reason = str(error).strip().partition("\n")[0]
            raise SapbertError(Errors.E612.format(path=path, reason=reason)) from None
    if overrides:
        config = merge_config(config, nest_values(overrides))
    check_section(config, default, "")
    return fill_functions(config)


def merge_config(config: Config, updates: dict[str, Any]) -> Config:
    """Change a config; another function drops the arguments of the one before."""
    merged = config.merge(updates)
    for dotted, value in flatten_config(updates):
        *sections, key = dotted.split(".")
        if not key.startswith("@"):
            continue
        old: Any = config
        new: Any = updates
        for name in sections:
            old, new = old.get(name) if isinstance(old, dict) else None, new[name]
        if not isinstance(old, dict) or old.get(key) != value:
            section: Any = merged
            for name in sections[:-1]:
                section = section[name]
            section[sections[-1]] = dict(new)
    return merged


def check_section(section: Any, default: Any, prefix: str) -> None:
    """Hold a section against the defaults: the same keys, and values of their types.

    section (Any): What is set.
    default (Any): The same section of the defaults.
    prefix (str): Its dotted name, with a dot at the end.
    RAISES (SapbertError): At the first difference.
    """
    for key, value in section.items():
        name = f"{prefix}{key}"
        if key not in default:
            near = get_close_matches(key, default, n=1) or sorted(default)[:1]
            raise SapbertError(
                Errors.E613.format(setting=name, near=f"{prefix}{near[0]}")
            )
        expected = default[key]
        if isinstance(expected, dict):
            if not isinstance(value, dict):
                raise SapbertError(
                    Errors.E614.format(setting=name, expected="a section", value=value)
                )
            if not any(each.startswith("@") for each in expected):
                check_section(value, expected, f"{name}.")
        elif not has_type_of(value, expected):
            raise SapbertError(
                Errors.E614.format(
                    setting=name,
                    expected=TYPES.get(type(expected), "a text or null"),
                    value=value,
                )
            )


def has_type_of(value: Any, default: Any) -> bool:
    """Return whether a value may stand where a default stands."""
    if default is None:
        return value is None or isinstance(value, str)
    if isinstance(default, float):
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return type(value) is type(default)


def fill_functions(config: Config) -> Config:
    """Write the defaults of registered functions into a config.

    config (Config): The config.
    RETURNS (Config): The same with all arguments of the functions that it names.
    RAISES (SapbertError): If a function or an argument of it is unknown.
    """
    resolve_config(config)  # which looks for what `fill` passes over
    filled: Config = registry.fill(config)
    return filled


def resolve_config(config: Config) -> dict[str, Any]:
    """Call the registered functions that a config names.

    config (Config): The config.
    RETURNS (dict[str, Any]): The same, with what they made in their places.
    RAISES (SapbertError): If a function or an argument of it is unknown.
    """
    try:
        resolved: dict[str, Any] = registry.resolve(config)
    except ConfigValidationError as error:
        problems = "; ".join(
            f"{'.'.join(map(str, each.get('loc', [])))}: {each.get('msg')}"
            for each in error.errors
        )
        raise SapbertError(Errors.E615.format(problems=problems)) from None
    except RegistryError as error:
        raise SapbertError(Errors.E615.format(problems=error)) from None
    return resolved
