// Pictures: each has the place of its own shape, and one that is shown much larger than it is has squares for pixels.

const COARSE = 2;

/** Give a picture its shape, so that nothing empty follows it; between the pixels of a small one is nothing. */
export function sharpen(picture) {
  if (picture.naturalWidth === 0) return;
  picture.style.setProperty("--ratio", picture.naturalWidth / picture.naturalHeight);
  picture.classList.add("fitted");
  const scale = Math.min(picture.clientWidth / picture.naturalWidth, picture.clientHeight / picture.naturalHeight);
  picture.classList.toggle("enlarged", scale >= COARSE);
}

/** Sharpen the pictures of a part of the page, now and as they load. */
export function sharpenIn(part) {
  part.addEventListener("load", (event) => event.target.matches("img") && sharpen(event.target), true);
  for (const each of part.querySelectorAll("img")) if (each.complete) sharpen(each);
}
