"""The former place of :mod:`admiss.tables.schema`, which files of models that earlier versions wrote still name."""

from admiss.tables.column import SourceError as SourceError
from admiss.tables.schema import Schema as Schema
