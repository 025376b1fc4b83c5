"""How the page looks: light and dark, on a laptop and on a phone, without anything from outside."""

CSS = """
:root { color-scheme: light dark; --paper:#fbfbfa; --card:#fff; --ink:#1c1f24; --dim:#667080;
  --rule:#dfe3e8; --mark:#fff3c4; --link:#1f5fd0; }
@media (prefers-color-scheme: dark) { :root { --paper:#14161a; --card:#1d2026; --ink:#e6e8eb;
  --dim:#98a2b0; --rule:#343a44; --mark:#4a3f12; --link:#8ab4ff; } }
* { box-sizing: border-box; }
body { margin:0 auto; max-width:1240px; padding:1.2rem; background:var(--paper); color:var(--ink);
  font:15px/1.5 system-ui, sans-serif; }
h1 { font-size:1.6rem; margin:.2rem 0; } h2 { font-size:1.2rem; margin:0 0 .6rem; }
h3 { font-size:1rem; margin:1rem 0 .4rem; }
a { color:var(--link); } p { max-width:75ch; } .dim, .empty { color:var(--dim); }
section { background:var(--card); border:1px solid var(--rule); border-radius:10px;
  padding:1rem; margin:1rem 0; }
.cards { display:grid; gap:.8rem; grid-template-columns:repeat(auto-fit, minmax(9rem, 1fr)); }
.cards div { border:1px solid var(--rule); border-radius:8px; padding:.5rem .7rem; }
.cards b { display:block; font-size:1.25rem; }
.charts { display:grid; gap:1rem;
  grid-template-columns:repeat(auto-fit, minmax(min(100%, 24rem), 1fr)); }
figure { margin:0; min-width:0; } figcaption { font-weight:600; }
svg { width:100%; height:auto; display:block; } svg text { fill:var(--dim); font-size:11px; }
svg.chart text { font-size:16px; }
svg .rule { stroke:var(--rule); stroke-width:1; }
svg.grid { max-width:700px; } svg .untested { fill:none; stroke:var(--rule); }
svg text.on { fill:#fff; } svg text.big { font-size:15px; font-weight:700; }
svg text.small { font-size:10px; }
svg .trend { fill:none; stroke:#fff; stroke-width:1.4; opacity:.85; }
.legend { display:flex; flex-wrap:wrap; gap:.2rem .9rem; font-size:.85rem; color:var(--dim); }
.key { display:inline-flex; align-items:center; gap:.35rem; }
.key i { width:.8rem; height:.8rem; border-radius:2px; display:inline-block; }
.key i.dash { height:.2rem; border-radius:0; width:1.1rem;
  mask:repeating-linear-gradient(90deg, #000 0 .3rem, #0000 .3rem .45rem); }
.wide { overflow-x:auto; } table { border-collapse:collapse; font-size:.88rem; }
th, td { text-align:left; padding:.25rem .6rem; border-bottom:1px solid var(--rule);
  vertical-align:top; } th { color:var(--dim); font-weight:600; }
td.mark, tr.mark td { background:var(--mark); } .map { overflow-x:auto; }
.map img { display:block; max-width:none; image-rendering:pixelated; }
@media (min-width:700px) { .map img { max-width:100%; image-rendering:auto; }
  .map:has(:checked) img { max-width:none; image-rendering:pixelated; } }
@media (max-width:699px) { .map label { display:none; } }
pre { overflow-x:auto; background:var(--mark); padding:.6rem; border-radius:6px; }
video { max-width:100%; border-radius:6px; } details > summary { cursor:pointer; }
.videos { display:grid; gap:1rem; grid-template-columns:repeat(auto-fit, minmax(18rem, 1fr)); }
footer { color:var(--dim); font-size:.85rem; }
"""
