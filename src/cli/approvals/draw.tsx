import { renderToString } from 'ink'
import { Screen, type ScreenProps } from './screen.js'

/** A frame as text with colours, one line a row. */
export function drawFrame(props: ScreenProps): string {
  return renderToString(<Screen {...props} />, { columns: props.size.columns })
}
