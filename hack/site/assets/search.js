// SPDX-License-Identifier: Apache-2.0

// Shows the pages that have all words of the search, those with a word in the title first.
const input = document.getElementById("search");
const list = document.getElementById("found");
input.addEventListener("input", () => {
  const words = input.value.toLowerCase().split(/\s+/).filter((word) => word.length > 1);
  const has = (text) => words.every((word) => text.toLowerCase().includes(word));
  const found = words.length === 0 ? [] : pages.filter((page) => has(page.title + " " + page.text));
  found.sort((a, b) => has(b.title) - has(a.title));
  list.replaceChildren(...found.slice(0, 15).map((page) => {
    const link = document.createElement("a");
    link.href = document.body.dataset.root + page.link;
    link.textContent = page.title;
    const entry = document.createElement("li");
    entry.append(link);
    return entry;
  }));
});
