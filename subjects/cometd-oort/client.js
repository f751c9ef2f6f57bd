import { CometD } from 'cometd'

const cometd = new CometD()
cometd.init({ url: 'http://127.0.0.1:8000/cometd' }, () => {
  cometd.subscribe('/news', ({ data }) => console.log(data))
})
