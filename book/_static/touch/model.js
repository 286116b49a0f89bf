// openModel(show): the page's one worker with the everyday model, which all parts that
// translate share; the first to ask loads it, and `show` is told which share has come.
var openModel = (() => {
  const source = document.currentScript.src.replace(/touch\/model\.js.*/, "live/translate.js");
  let ready = null;
  const load = () => new Promise((resolve, reject) => {
    const onerror = () => { ready = null; reject(new Error("translate.js is missing")); };
    document.head.append(Object.assign(document.createElement("script"), { src: source, onload: resolve, onerror }));
  });
  return async (show) => {
    if (!window.Live) await (ready ??= load());
    return Live.open(show);
  };
})();
