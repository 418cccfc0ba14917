/** The demo's project: two small texts. */
export const MENU = `# Menu

Coffee: 2.80
Tea, green: 3.20
Tea, mint: 3.00
Cake: 4.00
`

export const STORIES = `# Stories

The owner's grandmother brought the first tea from Tirana in a biscuit tin.
Nobody has ever finished a whole cake alone.
`

/** The one change that is made to it. */
export const PRICE = { path: 'menu.md', old_string: 'Tea, green: 3.20', new_string: 'Tea, green: 3.50' }
