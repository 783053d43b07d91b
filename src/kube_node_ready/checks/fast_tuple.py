"""`typing.NamedTuple` for a process that runs for a tenth of a second.

To the type checker it is that very class. At run time it does the part of it that we use, because `typing` and the
code that `namedtuple` generates would take a tenth of all the worker's time.
"""

from operator import itemgetter

__all__ = ["FastTuple"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NamedTuple as FastTuple
else:

    class FastTuple(tuple):
        """Fields are the class's annotations, defaults their values; a field without a default comes first."""

        __slots__ = ()
        _fields: tuple[str, ...] = ()

        def __init_subclass__(cls) -> None:
            cls._fields = tuple(cls.__annotations__)
            cls._defaults = {name: cls.__dict__[name] for name in cls._fields if name in cls.__dict__}
            for at, name in enumerate(cls._fields):
                setattr(cls, name, property(itemgetter(at)))

        def __new__(cls, *values, **named):  # noqa: ANN002, ANN003, ANN204  NamedTuple's, as far as types go
            if len(values) > len(cls._fields) or not named.keys() <= set(cls._fields[len(values) :]):
                raise TypeError(f"{cls.__name__} has the fields {', '.join(cls._fields)}")
            rest = cls._defaults | named
            try:
                return tuple.__new__(cls, (*values, *(rest[name] for name in cls._fields[len(values) :])))
            except KeyError as name:
                raise TypeError(f"{cls.__name__} needs a value for {name}") from None

        def __repr__(self) -> str:
            pairs = zip(self._fields, self, strict=True)
            return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in pairs)})"

        def _replace(self, **named: object) -> "FastTuple":
            return type(self)(**(dict(zip(self._fields, self, strict=True)) | named))
