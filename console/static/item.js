// The item that is asked about: its pictures, enlarged on request, and whether its folded values are open.

import { state } from "./state.js";

const COARSE = 2; // a picture shown so much larger than it is has squares for pixels, nothing in between

let restIsOpen = false; // who opened the folded values of one row wants those of the next

/** Prepare the item of an article that is put on the page. */
export function openItem(article) {
  for (const each of article.querySelectorAll(".rest")) each.open = restIsOpen;
  for (const each of article.querySelectorAll(".picture.zoomed")) zoom(each);
  for (const each of article.querySelectorAll(".picture img")) sharpen(each);
}

/** Give a picture the place of its own shape, so that nothing empty follows it, and show its pixels where they are large. */
function sharpen(picture) {
  if (picture.naturalWidth === 0) return;
  picture.style.setProperty("--ratio", picture.naturalWidth / picture.naturalHeight);
  picture.classList.add("fitted");
  const scale = Math.min(picture.clientWidth / picture.naturalWidth, picture.clientHeight / picture.naturalHeight);
  picture.classList.toggle("enlarged", scale >= COARSE);
}

/** Show a picture in the whole window, or where it was. */
export function zoom(figure = state.current.querySelector(".picture")) {
  if (figure === null) return;
  const isZoomed = figure.classList.toggle("zoomed");
  figure.querySelector(".zoom-word").textContent = isZoomed ? "make smaller" : "enlarge";
  sharpen(figure.querySelector("img"));
}

/** End a zoom; return whether there was one. */
export function unzoom() {
  const zoomed = state.current?.querySelector(".picture.zoomed") ?? null;
  if (zoomed !== null) zoom(zoomed);
  return zoomed !== null;
}

export function watchItem(stage) {
  stage.addEventListener("load", (event) => event.target.matches(".picture img") && sharpen(event.target), true);
  stage.addEventListener("click", (event) => {
    const asked = event.target.closest(".zoom, .picture img");
    if (asked !== null) zoom(asked.closest(".picture"));
  });
  stage.addEventListener(
    "toggle",
    (event) => {
      if (event.target.matches(".rest")) restIsOpen = event.target.open;
    },
    true,
  );
  for (const each of stage.querySelectorAll(".picture img")) if (each.complete) sharpen(each);
}
