"""Pages of notebooks: tables without scripts, with the colours of the page around them."""
from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any, Iterable, Sequence

if TYPE_CHECKING:
    from ._model import Model


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, dict):
        return ", ".join(f"{name} {_text(each)}" for name, each in value.items())
    return str(value)


def _table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    def line(tag: str, cells: Sequence[Any]) -> str:
        return "<tr>" + "".join(f'<{tag} style="text-align:left">{html.escape(_text(cell))}</{tag}>' for cell in cells) + "</tr>"

    return f"<table><thead>{line('th', head)}</thead><tbody>{''.join(line('td', row) for row in rows)}</tbody></table>"


def _size(count: float) -> str:
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.4g} {unit}"
        count /= 1000
    return f"{count:.4g} GB"


def model_page(model: Model) -> str:
    sizes = model.manifest["sizes"]
    tensors = [(kind, tensor.name, f"{tensor.element.name}[{', '.join(map(str, tensor.dims))}]", _size(tensor.bytes))
               for kind, group in (("input", model.inputs), ("output", model.outputs), ("state", model.states))
               for tensor in group]
    facts = [("CPU", model.manifest["target"]["cpu"]), ("weights", _size(sizes["weight_bytes"])),
             ("code", _size(sizes["code_bytes"])), ("arena", _size(sizes["arena_bytes"])),
             ("FLOP of a run", f"{sizes['flops']:,}"), ("kernels", len(model.manifest["kernels"]))]
    facts += [(f"dim {dim.name}", str(dim)) for dim in model.dims.values()]
    return (f"<div><b>{html.escape(model.name)}</b>" + _table(("", "name", "type", "bytes at most"), tensors) +
            _table(("", "compiled"), facts) + "</div>")


def report_page(title: str, data: dict[str, Any]) -> str:
    plain = [(name, value) for name, value in data.items() if not isinstance(value, list)]
    page = f"<div><b>{html.escape(title)}</b>" + _table(("", ""), plain)
    for name, rows in data.items():
        if isinstance(rows, list) and rows and isinstance(rows[0], dict):
            columns = [column for column, value in rows[0].items() if not isinstance(value, list)]
            page += f"<p>{html.escape(name)}</p>" + _table(columns, [[row.get(column, "") for column in columns] for row in rows])
    return page + "</div>"


def text_page(title: str, text: str) -> str:
    return f"<div><b>{html.escape(title)}</b><pre>{html.escape(text)}</pre></div>"
