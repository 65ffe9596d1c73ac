"""What brokers say of themselves in ApiVersions, in one layout, and what several of them have in common.

A client that is told the common versions can be served by every broker; so is one that came by an address that stands
for none in particular.

Source: KIP-35, KIP-511; KIP-584 (features).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from typing import Any, Final

from kafka_dt_protocol import APIS, ApiKey, build
from kafka_dt_protocol.wire.layout import entity_layout

_LATEST: Final = APIS[ApiKey.API_VERSIONS].response[APIS[ApiKey.API_VERSIONS].max_version]


def in_latest_layout(answer: Any) -> Any:
    """Give an answer to ApiVersions in the layout of the newest version; what it does not say has its default."""
    if type(answer) is _LATEST:
        return answer
    elements = {field.name: field.entity for field in _all_fields() if field.entity is not None}
    values = _values(answer)
    for name, element in elements.items():
        values[name] = tuple(build(element, **_values(each)) for each in values.get(name, ()))
    return build(_LATEST, **values)


def in_common(answers: Sequence[Any]) -> Any:
    """Give what all of some answers say; they are of the newest layout, and at least one.

    What the cluster has finalized is told as by the broker that knows most of it.
    """
    newest = max(answers, key=lambda answer: answer.finalized_features_epoch)
    return replace(
        newest,
        api_keys=_shared(*(answer.api_keys for answer in answers), key="api_key"),
        supported_features=_shared(*(answer.supported_features for answer in answers), key="name"),
        zk_migration_ready=all(answer.zk_migration_ready for answer in answers),
    )


def _shared(first: Iterable[Any], *others: Iterable[Any], key: str) -> tuple[Any, ...]:
    """Narrow ranges to what is in those of the same key of all others; what is then empty is left out."""
    tables = [{getattr(each, key): each for each in other} for other in others]
    found = []
    for entry in first:
        same = [entry, *(table[getattr(entry, key)] for table in tables if getattr(entry, key) in table)]
        lowest, highest = max(each.min_version for each in same), min(each.max_version for each in same)
        if len(same) == len(tables) + 1 and lowest <= highest:
            found.append(replace(entry, min_version=lowest, max_version=highest))
    return tuple(found)


def _all_fields() -> tuple[Any, ...]:
    layout = entity_layout(_LATEST)
    return (*layout.plain, *layout.tagged)


def _values(entity: Any) -> dict[str, Any]:
    return {field.name: getattr(entity, field.name) for field in fields(entity)}
