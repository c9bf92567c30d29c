"""The page's style: one sheet, light and dark, narrow and wide, and on paper.

The colours of the policies and of the work are apart for every kind of colour vision; nothing is said by colour alone.
"""

from typing import Final

from recallscope.telemetry.report.blocks import Tone

__all__ = ["STYLE"]

STYLE: Final = """\
:root {
  color-scheme: light dark;
  --ground: #ffffff; --raised: #f5f6f8; --ink: #1c2128; --quiet: #57606a; --rule: #d5dae1;
  --good: #0b63a8; --bad: #b34700; --open: #57606a; --warn-ground: #fff4e5; --warn-rule: #d98200; --link: #0b57b0;
  --track: #e9ecf0;
  --deadline: #d17a00; --prefetch: #3f8fd0; --tiered: #00806a; --plain: #5b6b82;
  --memory: #c2410c; --model: #3f7fb5; --tool: #7a5ea8; --prepare: #8a8f3c; --backoff: #b0406a; --waiting: #9a7b4f;
  --other: #8b949e;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #14181d; --raised: #1d232a; --ink: #e6e9ed; --quiet: #a0a9b4; --rule: #363e48;
    --good: #6cb6ff; --bad: #ff9a52; --open: #a0a9b4; --warn-ground: #33270f; --warn-rule: #d98200; --link: #79b8ff;
    --track: #2a313a;
    --deadline: #f0a13c; --prefetch: #66b3ee; --tiered: #3fc1a5; --plain: #93a4bd;
    --memory: #ff8352; --model: #6aa9de; --tool: #ab8fdc; --prepare: #b9bf62; --backoff: #e57aa2; --waiting: #c9a673;
    --other: #7d8793;
  }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body {
  margin: 0 auto; padding: 1.5rem 1.25rem 4rem; max-width: 72rem; background: var(--ground); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", "Noto Sans", "DejaVu Sans", sans-serif;
}
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 1rem; }
h2 { font-size: 1.3rem; margin: 2.75rem 0 .5rem; padding-top: .75rem; border-top: 1px solid var(--rule); }
h3 { font-size: 1.05rem; margin: 0; overflow-wrap: anywhere; }
p { margin: .5rem 0; max-width: 48rem; overflow-wrap: anywhere; }
a { color: var(--link); }
nav ul { list-style: none; margin: 1rem 0; padding: 0; display: flex; flex-wrap: wrap; gap: .25rem 1rem; }
dl.facts {
  display: grid; grid-template-columns: max-content 1fr; gap: .25rem 1rem; margin: 0; padding: .9rem 1rem;
  background: var(--raised); border-radius: .5rem;
}
dl.facts dt { color: var(--quiet); }
dl.facts dd { margin: 0; overflow-wrap: anywhere; min-width: 0; }
.intro { color: var(--quiet); }
.remark.warning {
  border-left: .25rem solid var(--warn-rule); background: var(--warn-ground); padding: .5rem .75rem; max-width: none;
}
.remark ul { margin: .25rem 0; padding-left: 1.25rem; }
.remark > p { margin: 0; }
figure { margin: 1.25rem 0 1.75rem; display: grid; grid-template-columns: minmax(0, 1fr); gap: .5rem 2rem; }
@media (min-width: 60rem) {
  figure.beside { grid-template-columns: minmax(0, 3fr) minmax(0, 2fr); align-items: start; }
  figure.beside > figcaption { grid-column: 1 / -1; }
}
figcaption { font-weight: 600; }
svg.plot { display: block; overflow: visible; font-size: 14px; }
svg.plot text { fill: var(--ink); }
svg.plot .small { font-size: 12px; fill: var(--quiet); }
svg.plot .strong { font-weight: 600; }
svg.plot .end { text-anchor: end; }
svg.plot .middle { text-anchor: middle; }
svg.plot .start { text-anchor: start; }
svg.plot .track { fill: var(--track); }
svg.plot .axis { stroke: var(--rule); }
svg.plot .grid { stroke: var(--rule); stroke-dasharray: 2 4; }
svg.plot .limit { stroke: var(--ink); stroke-dasharray: 5 4; }
svg.plot .part { stroke: var(--ground); stroke-width: 1; }
svg.plot .line { fill: none; stroke-width: 2; }
svg.plot .band { opacity: .18; }
.drawing { overflow-x: auto; }
.drawing svg { display: block; width: 100%; min-width: 42rem; height: auto; }
.drawing text { fill: var(--ink); font: 12px system-ui, sans-serif; }
.drawing .dim { fill: var(--quiet); }
.drawing line { stroke: var(--rule); }
.drawing rect.turn { fill: var(--plain); }
.drawing rect.recall { fill: var(--tiered); }
.drawing rect.wait { fill: var(--memory); }
.drawing rect.selector { fill: var(--prefetch); }
.drawing rect.model { fill: var(--model); }
.drawing rect.tool { fill: var(--tool); }
.drawing rect.backoff { fill: var(--backoff); }
.drawing .mark circle { fill: var(--ground); stroke: var(--tiered); stroke-width: 1.5; }
.drawing .mark text { fill: var(--tiered); font-size: 10px; font-weight: 700; text-anchor: middle; }
.scroll { overflow-x: auto; max-width: 100%; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; color: var(--quiet); padding: 0 0 .35rem; }
th, td { text-align: left; vertical-align: top; padding: .3rem .6rem .3rem 0; border-bottom: 1px solid var(--rule); }
th { font-weight: 600; }
tbody th { min-width: 7.5rem; }
thead th { color: var(--quiet); vertical-align: bottom; }
th .about { display: block; font-weight: 400; color: var(--quiet); font-size: .85em; }
.number { text-align: right; white-space: nowrap; }
tr.quiet th, tr.quiet td { color: var(--quiet); font-weight: 400; }
td .line, th .line { display: block; overflow-wrap: break-word; }
td .line + .line, th .line + .line { color: var(--quiet); font-weight: 400; font-size: .92em; }
.mark-good { color: var(--good); font-weight: 700; }
.mark-bad { color: var(--bad); font-weight: 700; }
.mark-open { color: var(--open); }
.keys {
  list-style: none; margin: .4rem 0 0; padding: 0; display: flex; flex-wrap: wrap; gap: .2rem 1rem; font-size: .9rem;
}
.swatch {
  display: inline-block; width: .8em; height: .8em; border-radius: 2px; margin-right: .4em; background: var(--plain);
  print-color-adjust: exact; -webkit-print-color-adjust: exact;
}
article.turn { margin: 1.25rem 0; padding: .9rem 1rem 1rem; background: var(--raised); border-radius: .5rem; }
article.turn figure { margin: .75rem 0 0; }
.unseen { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
article.turn .told { max-width: none; color: var(--quiet); font-size: .9rem; }
dl.verdict { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1rem; margin: .5rem 0; }
dl.verdict dt { color: var(--quiet); }
dl.verdict dd { margin: 0; min-width: 0; overflow-wrap: anywhere; }
details > summary { cursor: pointer; color: var(--quiet); font-size: .9rem; }
footer { margin-top: 3rem; color: var(--quiet); font-size: .9rem; }
@media (max-width: 34rem) {
  body { padding: 1rem .75rem 3rem; font-size: 15px; }
  dl.facts, dl.verdict { grid-template-columns: 1fr; gap: 0; }
  dl.facts dd + dt, dl.verdict dd + dt { margin-top: .4rem; }
  table { font-size: .85rem; }
}
@media print {
  :root {
    color-scheme: light; --ground: #fff; --raised: #fff; --ink: #000; --quiet: #444; --rule: #bbb; --track: #eee;
    --good: #0b63a8; --bad: #b34700; --open: #444; --warn-ground: #fff;
    --deadline: #d17a00; --prefetch: #3f8fd0; --tiered: #00806a; --plain: #5b6b82; --memory: #c2410c;
    --model: #3f7fb5; --tool: #7a5ea8; --prepare: #8a8f3c; --backoff: #b0406a; --waiting: #9a7b4f; --other: #8b949e;
  }
  body { max-width: none; padding: 0; font-size: 10pt; }
  nav { display: none; }
  svg.plot { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  h2, h3, figcaption, caption { break-after: avoid; }
  figure, figure.beside { display: block; }
  .intro { break-after: avoid; }
  svg.plot, .drawing, tr, article.turn > p, article.turn > dl { break-inside: avoid; }
  .drawing svg { min-width: 0; }
  article.turn { border: 1px solid var(--rule); }
  .scroll { overflow: visible; }
  details::details-content { content-visibility: visible; block-size: auto; }
}
""" + "".join(
    f".tone-{tone} {{ fill: var(--{tone}); }} .line-{tone} {{ stroke: var(--{tone}); }} "
    f".swatch.tone-{tone} {{ background: var(--{tone}); }}\n"
    for tone in Tone
)
"""The whole sheet."""
