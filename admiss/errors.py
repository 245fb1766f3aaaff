"""The error of what runs for a long time: studies and passes over files."""


class EngineError(Exception):
    """A run, a store or a worker that cannot continue, in one sentence that says what to do.

    A cell of a study that fails is not an error but a row of the table.
    """
