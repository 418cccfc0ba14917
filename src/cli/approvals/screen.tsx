import { Box, Text } from 'ink'
import { firstListed, type Layout, LEAST, type Size } from './layout.js'
import { ageWords, clientWords, oneLine, type Question, targetWords } from './question.js'
import { chosenOf, type View } from './view.js'
import type { Line, Tone } from './words.js'
import { clipped } from './wrap.js'

export interface ScreenProps {
  view: View
  size: Size
  layout: Layout
  /** Of the chosen question, broken to fit. */
  lines: readonly Line[]
  now: number
  /** False for NO_COLOR. */
  colors: boolean
}

/** One frame of `kiki approvals watch`. */
export function Screen(props: ScreenProps) {
  const { view, size, layout } = props
  if (size.columns < LEAST.columns || size.rows < LEAST.rows)
    return <Text>{`This needs ${LEAST.columns}×${LEAST.rows}. ${view.questions.length} waiting. q quits.`}</Text>
  const list = <List {...props} />
  const detail = <Detail {...props} />
  return (
    <Box flexDirection="column" width={size.columns} height={size.rows}>
      <Header {...props} />
      <Row text={'─'.repeat(size.columns)} tone="dim" colors={props.colors} />
      {layout.wide ? (
        <Box height={layout.detailRows}>
          <Box flexDirection="column" width={layout.listColumns}>
            {list}
          </Box>
          <Box flexDirection="column" width={2}>
            <Text dimColor>{'│\n'.repeat(layout.detailRows).trimEnd()}</Text>
          </Box>
          <Box flexDirection="column" width={layout.detailColumns}>
            {detail}
          </Box>
        </Box>
      ) : (
        <>
          <Box flexDirection="column" height={layout.listRows}>
            {list}
          </Box>
          {layout.listRows > 0 && <Row text={'─'.repeat(size.columns)} tone="dim" colors={props.colors} />}
          <Box flexDirection="column" height={layout.detailRows}>
            {detail}
          </Box>
        </>
      )}
      <Row text={bottomRule(props)} tone="dim" colors={props.colors} />
      <NoticeRow {...props} />
      {layout.footer.map((line, index) => (
        <Row key={index} lead={line.lead} text={line.text} tone={line.tone} colors={props.colors} />
      ))}
    </Box>
  )
}

const COLORS: Partial<Record<Tone | 'good' | 'bad', string>> = {
  heading: 'cyan',
  add: 'green',
  remove: 'red',
  hunk: 'cyan',
  warn: 'yellow',
  good: 'green',
  bad: 'yellow',
}

function Row({ lead = '', text, tone, colors }: { lead?: string; text: string; tone: Tone; colors: boolean }) {
  const color = colors ? COLORS[tone] : undefined
  return (
    <Text wrap="truncate-end">
      <Text dimColor>{lead}</Text>
      <Text
        bold={tone === 'title' || tone === 'heading'}
        dimColor={tone === 'dim'}
        {...(color === undefined ? {} : { color })}
      >
        {lead + text === '' ? ' ' : text}
      </Text>
    </Text>
  )
}

function Header({ view, colors }: ScreenProps) {
  const count = view.questions.length
  const words = { connecting: 'looking for the host', connected: 'taking questions', lost: 'host away, waiting for it' }
  const color = view.link === 'connected' ? COLORS.good : COLORS.bad
  return (
    <Box justifyContent="space-between">
      <Text>
        <Text bold> Kiki approvals</Text>
        <Text>{count === 0 ? '' : `  ${count} waiting`}</Text>
      </Text>
      <Text {...(colors && color !== undefined ? { color } : {})}>
        {`${view.link === 'connected' ? '●' : '○'} ${words[view.link]} `}
      </Text>
    </Box>
  )
}

function List({ view, layout, now, colors }: ScreenProps) {
  const rowsEach = layout.wide ? 3 : 1
  const items = Math.max(1, Math.floor((layout.listRows + (rowsEach - 1)) / rowsEach))
  const from = firstListed(view, items)
  return view.questions
    .slice(from, from + items)
    .map((question) => (
      <Item
        key={question.id}
        question={question}
        chosen={question.id === view.chosen}
        columns={layout.listColumns}
        wide={layout.wide}
        now={now}
        colors={colors}
      />
    ))
}

interface ItemProps {
  question: Question
  chosen: boolean
  columns: number
  wide: boolean
  now: number
  colors: boolean
}

function Item({ question, chosen, columns, wide, now, colors }: ItemProps) {
  const mark = chosen ? '▌' : ' '
  const age = ageWords(question.asked_at, now).padStart(4)
  const what = `${oneLine(question.tool)}  ${targetWords(question)}`
  const whose = clientWords(question)
  const color = colors && chosen ? { color: 'cyan' } : {}
  const first = (
    <Text wrap="truncate-end">
      <Text {...color}>{mark}</Text>
      <Text dimColor>{`${age}  `}</Text>
      <Text bold={chosen}>{clipped(wide ? what : `${what}  ·  ${whose}`, columns - 8)}</Text>
    </Text>
  )
  if (!wide) return first
  return (
    <Box flexDirection="column" marginBottom={1} flexShrink={0}>
      {first}
      <Text wrap="truncate-end">
        <Text {...color}>{mark}</Text>
        <Text dimColor>{`      ${clipped(whose, columns - 8)}`}</Text>
      </Text>
    </Box>
  )
}

/** Fits under a list on the smallest screen. */
const HELP: readonly string[] = [
  'a  approve once: this call only',
  's  approve the same kind for this session',
  'A  approve always: adds a rule',
  'd  deny          m  deny, with a message for the client',
  '↑ ↓ k j  choose  PgUp PgDn b space g G  scroll',
  'q  quit; what waits goes on waiting',
  '│  begins each line that the client sent, ┊ its rest',
]

const EMPTY: readonly string[] = [
  'Nothing waits for you.',
  '',
  'While this is open, calls that need your approval wait here',
  'instead of being refused.',
]

function Detail({ view, layout, lines, colors }: ScreenProps) {
  if (view.help) return <Words words={HELP} />
  if (chosenOf(view) === undefined) {
    if (view.questions.length > 0) return <Words words={['Choose a question with ↑ or ↓.']} />
    return <Words words={view.link === 'lost' ? ['The host is not there. This goes on when it is back.'] : EMPTY} />
  }
  return lines
    .slice(view.top, view.top + layout.detailRows)
    .map((line, index) => <Row key={index} lead={line.lead} text={line.text} tone={line.tone} colors={colors} />)
}

function Words({ words }: { words: readonly string[] }) {
  return words.map((text, index) => (
    <Text key={index} wrap="truncate-end">
      {`  ${text}`}
    </Text>
  ))
}

function bottomRule({ view, size, layout, lines }: ScreenProps): string {
  const hidden = lines.length - view.top - layout.detailRows
  if (view.help || chosenOf(view) === undefined || lines.length <= layout.detailRows) return '─'.repeat(size.columns)
  const last = Math.min(lines.length, view.top + layout.detailRows)
  const more = hidden > 0 ? ' · PgDn shows more' : ' · end'
  const words = ` lines ${view.top + 1}–${last} of ${lines.length}${more} `
  return `${'─'.repeat(Math.max(2, size.columns - words.length - 3))}${words}───`
}

function NoticeRow({ view, size, colors }: ScreenProps) {
  const { notice } = view
  if (notice === undefined) return <Text> </Text>
  const color = notice.tone === 'plain' ? undefined : COLORS[notice.tone]
  return (
    <Text wrap="truncate-end" {...(colors && color !== undefined ? { color } : {})}>
      {` ${clipped(oneLine(notice.text), size.columns - 2)}`}
    </Text>
  )
}
