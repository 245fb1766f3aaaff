"""The former place of :mod:`admiss.tables`, which files of models that earlier versions wrote still name."""

from admiss.tables import open_source as open_source
