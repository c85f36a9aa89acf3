// The item that is asked about: its pictures, enlarged on request, and whether its folded values are open.

import { fit, sharpen, sharpenIn } from "./pictures.js";
import { state } from "./state.js";

let restIsOpen = false; // who opened the folded values of one row wants those of the next

/** Prepare the item of an article before it is put on the page: what changes later is laid out a second time. */
export function prepareItem(article) {
  for (const each of article.querySelectorAll(".rest")) each.open = restIsOpen;
  for (const each of article.querySelectorAll(".picture.zoomed")) zoom(each);
  for (const each of article.querySelectorAll(".picture img")) fit(each);
}

/** Open the item of an article that is put on the page. */
export function openItem(article) {
  article.querySelector(".item").scrollTop = 0;
  for (const each of article.querySelectorAll(".picture img")) sharpen(each);
  keepRowsWhole();
}

/** Move the values below a picture, if only a part of a row would be seen at the lower edge: that row is whole, or not there. */
function keepRowsWhole() {
  const item = state.current?.querySelector(".item:has(.pictures)") ?? null;
  if (item === null) return;
  item.style.removeProperty("--nudge");
  if (item.scrollHeight <= item.clientHeight) return;
  const edge = item.getBoundingClientRect().bottom;
  const rows = [...item.querySelectorAll(".values-list > div")].map((each) => each.getBoundingClientRect());
  const cut = rows.find((row) => row.top < edge && row.bottom > edge);
  if (cut) item.style.setProperty("--nudge", `${edge - cut.top}px`);
}

/** Show a picture in the whole window, or where it was. */
export function zoom(figure = state.current.querySelector(".picture")) {
  if (figure === null) return;
  const isZoomed = figure.classList.toggle("zoomed");
  figure.querySelector(".zoom-word").textContent = isZoomed ? "make smaller" : "enlarge";
  sharpen(figure.querySelector("img"));
  figure.scrollLeft = (figure.scrollWidth - figure.clientWidth) / 2; // on a phone it is wider than the screen
}

/** End a zoom; return whether there was one. */
export function unzoom() {
  const zoomed = state.current?.querySelector(".picture.zoomed") ?? null;
  if (zoomed !== null) zoom(zoomed);
  return zoomed !== null;
}

export function watchItem(stage) {
  sharpenIn(stage);
  stage.addEventListener("load", keepRowsWhole, true);
  addEventListener("resize", keepRowsWhole);
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
}
