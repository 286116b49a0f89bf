// Loads the library that draws the charts when a reader comes within a screen of one.
{
  const library = document.currentScript.src.replace(/charts-near\.js.*/, "charts.js");
  const watch = new IntersectionObserver((seen) => {
    if (!seen.some((each) => each.isIntersecting)) return;
    watch.disconnect();
    document.head.append(Object.assign(document.createElement("script"), { src: library }));
  }, { rootMargin: "100%" });
  for (const chart of document.querySelectorAll(".vega-chart")) watch.observe(chart);
}
