"use strict";
// Draws the plots, in the colours of the page, and again when the reader turns from light to dark.
(() => {
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  function dressed(layout) {
    const text = colour("--plot-text"), grid = colour("--plot-grid"), back = colour("--card");
    const axis = (given) => ({...given, gridcolor: grid, linecolor: grid, zerolinecolor: grid, tickcolor: grid});
    return {
      ...layout,
      font: {family: getComputedStyle(document.body).fontFamily, size: 13, color: text},
      hoverlabel: {bgcolor: back, bordercolor: grid, font: {color: text}, namelength: -1},
      xaxis: axis(layout.xaxis),
      yaxis: axis(layout.yaxis),
    };
  }

  function draw() {
    return Promise.all(Object.entries(figures).map(([id, figure]) =>
      Plotly.react(`plot-${id}`, figure.data, dressed(figure.layout), {displayModeBar: false, responsive: true})));
  }

  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  draw().then(() => { document.documentElement.dataset.drawn = Object.keys(figures).length; });
})();

// Shows the cases that the reader asks for, opens the one that a link names, and opens all of them for print.
(() => {
  const cases = [...document.querySelectorAll(".case")];
  const filters = document.querySelector(".filters");
  if (!filters) return;
  const [text, kind, severity, count] =
    ["text", "kind", "severity", "count"].map((name) => document.getElementById(`filter-${name}`));

  function show() {
    const words = text.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const each of cases) {
      each.hidden = !(words.every((word) => each.dataset.names.includes(word))
        && (!kind.value || each.dataset.kinds.split(" ").includes(kind.value))
        && (!severity.value || each.dataset.severity === severity.value));
    }
    count.textContent = `${cases.filter((each) => !each.hidden).length} of ${cases.length} cases`;
  }

  function follow() {
    const named = cases.find((each) => `#${each.id}` === location.hash);
    if (!named) return;
    if (named.hidden) {
      text.value = kind.value = severity.value = "";
      show();
    }
    named.open = true;
    named.scrollIntoView();
    named.querySelector("summary").focus({preventScroll: true});
  }

  let closed = [];
  addEventListener("beforeprint", () => {
    closed = [...document.querySelectorAll(".finding:not([open])")];
    for (const each of closed) each.open = true;
  });
  addEventListener("afterprint", () => { for (const each of closed) each.open = false; });
  for (const each of [text, kind, severity]) each.addEventListener("input", show);
  addEventListener("hashchange", follow);
  filters.hidden = false;
  show();
  follow();
})();
