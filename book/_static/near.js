// Loads the script of what a reader can touch (book/_ext/touch.py) and its style, when
// the reader comes within a screen of it, and model.js, with which they open the model.
{
  const folder = document.currentScript.src.replace(/near\.js.*/, "touch/");
  const add = (tag, about) => document.head.append(Object.assign(document.createElement(tag), about));
  const loaded = new Set();
  const watch = new IntersectionObserver((seen) => {
    for (const { isIntersecting, target } of seen) {
      if (!isIntersecting) continue;
      const name = target.firstElementChild.localName;
      watch.unobserve(target);
      if (!loaded.size) {
        add("link", { rel: "stylesheet", href: `${folder}touch.css` });
        add("script", { src: `${folder}model.js` });
      }
      if (!loaded.has(name)) add("script", { src: `${folder}${name}.js` });
      loaded.add(name);
    }
  }, { rootMargin: "100%" });
  for (const place of document.querySelectorAll(".touch")) watch.observe(place);
}
