"""The template of a new class is typed, and its docstring has the required order."""

import ast

from admiss.cli.new_class import new_class_files


def test_the_docstring_has_the_required_order():
    text = new_class_files("MyOwnClass")["my_own_class.py"]
    heads = ["Definition", "p(F)", "What it can express", "Where it loses", "Reference"]
    positions = [text.index(f"    {head}\n") for head in heads]
    assert positions == sorted(positions)


def test_the_template_is_typed():
    for text in new_class_files("MyOwnClass").values():
        functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
        assert functions
        for function in functions:
            assert function.returns is not None
            assert all(a.annotation is not None for a in function.args.args if a.arg != "self")
