"""Rows from files, data frames, arrays and Dask, in chunks of bounded memory.

:mod:`schema <admiss.streaming.sources.schema>` turns columns into features, :mod:`source
<admiss.streaming.sources.source>` says what a source is, and :mod:`opening <admiss.streaming.sources.opening>` is the
door.
"""

from admiss.streaming.sources.opening import open_source

__all__ = ["open_source"]
