"""Decode list pages and watch events, as far as the informer reads them."""

from typing import Generic, Protocol, TypeVar

import msgspec
from msgspec import Raw, Struct

from kube_node_ready.api.nesting import tolerant
from kube_node_ready.kube.errors import Status


class Metadata(Protocol):
    @property
    def uid(self) -> str: ...
    @property
    def resource_version(self) -> str: ...


class Wire(Protocol):
    """What objects of every kind have."""

    @property
    def metadata(self) -> Metadata: ...


W = TypeVar("W", bound=Wire)


class Change(Struct, Generic[W], frozen=True, gc=False):
    type: str
    object: W


class Event(Struct, frozen=True):
    type: str
    object: Raw


class BookmarkMetadata(Struct, frozen=True, rename="camel"):
    resource_version: str
    annotations: dict[str, str] = {}


class Bookmark(Struct, frozen=True):
    metadata: BookmarkMetadata


class PageMetadata(Struct, frozen=True, rename="camel"):
    resource_version: str
    continue_: str = msgspec.field(default="", name="continue")


class Page(Struct, frozen=True):
    metadata: PageMetadata
    items: list[Raw]


decode_event = tolerant(msgspec.json.Decoder(Event).decode)
decode_bookmark = tolerant(msgspec.json.Decoder(Bookmark).decode)
decode_page = tolerant(msgspec.json.Decoder(Page).decode)
decode_status = tolerant(msgspec.json.Decoder(Status).decode)
