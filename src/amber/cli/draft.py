"""Settings on their way: of the right names and types, but not yet checked against each other."""

from dataclasses import MISSING, field, fields, is_dataclass, make_dataclass
from typing import Any, get_type_hints


def start_draft(settings_class: type) -> Any:
    """Build an object with the fields and defaults of a dataclass, and none of its rules.

    `amber.config.update` takes it as it takes the dataclass. Fields without a default are None.
    """
    hints = get_type_hints(settings_class)
    parts: list[tuple[str, Any, Any]] = []
    for part in fields(settings_class):
        kind, default = hints[part.name], part.default
        if is_dataclass(kind):
            default = start_draft(kind)  # type: ignore[arg-type]
            kind = type(default)
        elif part.default_factory is not MISSING:
            default = part.default_factory()
        parts.append((part.name, kind, field(default=None if default is MISSING else default)))
    return make_dataclass(settings_class.__name__, parts, frozen=True, kw_only=True)()


def finish_draft(settings_class: type, draft: Any) -> Any:
    """Build the dataclass from a draft of it, which applies its rules.

    Raises:
        UserError: what the dataclass refuses.
    """
    hints = get_type_hints(settings_class)
    values: dict[str, Any] = {}
    for part in fields(settings_class):
        value = getattr(draft, part.name)
        values[part.name] = finish_draft(hints[part.name], value) if is_dataclass(value) else value
    return settings_class(**values)
