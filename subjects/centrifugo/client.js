import { Centrifuge } from 'centrifuge'

const centrifuge = new Centrifuge('ws://127.0.0.1:8000/connection/websocket')
const subscription = centrifuge.newSubscription('news')
subscription.on('publication', ({ data }) => console.log(data))
subscription.subscribe()
centrifuge.connect()
