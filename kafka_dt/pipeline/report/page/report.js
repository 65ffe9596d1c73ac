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
